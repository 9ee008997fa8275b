// Package must ends a measurement or a life at the first error, wherever it comes: the error
// is the value of a panic, and Try returns it.
package must

import (
	"fmt"
	"os"
	"time"
)

type failure struct{ error }

// Try calls do, and returns the error that ended it.
func Try(do func()) (err error) {
	defer func() {
		switch reason := recover().(type) {
		case nil:
		case failure:
			err = reason.error
		default:
			panic(reason)
		}
	}()
	do()
	return nil
}

// Do fails with an error that is not nil.
func Do(err error) {
	if err != nil {
		panic(failure{err})
	}
}

// Get returns a value, or fails.
func Get[T any](value T, err error) T {
	Do(err)
	return value
}

// Be fails unless a condition holds.
func Be(holds bool, format string, args ...any) {
	if !holds {
		panic(failure{fmt.Errorf(format, args...)})
	}
}

// Read returns the text of a file, or fails.
func Read(path string) string { return string(Get(os.ReadFile(path))) }

// Write writes a file, or fails.
func Write(path, text string) { Do(os.WriteFile(path, []byte(text), 0o644)) }

// Soon waits until a condition holds, and reports whether it held within a limit.
func Soon(limit time.Duration, holds func() bool) bool {
	for end := time.Now().Add(limit); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}
