# The tasks of ./dev, for those who have make; arguments go into ARGS.
PYTHON ?= python3
ARGS ?=

.DEFAULT_GOAL := help
TASKS := demo lab test lint types format golden e2e docs release releases field lock clean help

.PHONY: $(TASKS)
$(TASKS):
	@PYTHON="$(PYTHON)" ./dev $@ $(ARGS)
