//go:build linux && faults

package shim

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
)

var faulted sync.Map

// fault panics, once, at an event, an action or a place that is in the list FAULT_AT.
func fault(at any) {
	text := fmt.Sprint(at)
	_, again := faulted.LoadOrStore(text, true)
	if !again && slices.Contains(strings.Split(os.Getenv("FAULT_AT"), ","), text) {
		panic("at " + text)
	}
}
