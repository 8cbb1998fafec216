// SPDX-License-Identifier: Apache-2.0

package ctl

import (
	"errors"
	"fmt"
)

// The exit codes of auditctl. They are a promise; every help text that can give more than 0, 1 and 2 lists its own.
const (
	exitOK          = 0
	exitError       = 1
	exitUsage       = 2
	exitNothing     = 3 // nothing found
	exitDenied      = 4 // explain: would be denied
	exitAsk         = 5 // explain: would be asked
	exitVerify      = 6 // verification failed
	exitUnreachable = 7 // the daemon does not answer
)

// Error is a failure as it is shown: one line of what went wrong, and hint lines that say what to do.
type Error struct {
	Code  int
	Msg   string
	Hints []string
	Err   error
}

func (e *Error) Error() string {
	if e.Msg == "" && e.Err != nil {
		return e.Err.Error()
	}
	return e.Msg
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// quiet ends the program with a code and no message: everything was said on stdout.
func quiet(code int) error { return &Error{Code: code} }

func usagef(format string, args ...any) error {
	return &Error{Code: exitUsage, Msg: fmt.Sprintf(format, args...)}
}

func failf(hint, format string, args ...any) error {
	e := &Error{Code: exitError, Msg: fmt.Sprintf(format, args...)}
	if hint != "" {
		e.Hints = []string{hint}
	}
	return e
}

// exitCode maps an error to the table.
func exitCode(err error) int {
	var e *Error
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &e):
		return e.Code
	}
	return exitError
}
