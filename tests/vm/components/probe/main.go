// Command probe answers HTTP requests with the name of its Pod, or sends one.
package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

const port = ":8080"

func main() {
	if len(os.Args) == 3 && os.Args[1] == "get" {
		fail(get(os.Args[2]))
		return
	}
	fail(serve())
}

func serve() error {
	name, err := os.Hostname()
	if err != nil {
		return err
	}
	http.HandleFunc("/", func(answer http.ResponseWriter, request *http.Request) {
		fmt.Fprintf(answer, "%s %s", name, request.RemoteAddr)
	})
	return http.ListenAndServe(port, nil)
}

func get(url string) error {
	client := http.Client{Timeout: 10 * time.Second}
	answer, err := client.Get(url)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	_, err = io.Copy(os.Stdout, answer.Body)
	return err
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
