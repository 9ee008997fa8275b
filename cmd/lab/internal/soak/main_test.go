package main

import (
	"os"
	"strings"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && roles[os.Args[1]] != nil {
		roles[os.Args[1]](os.Args[2:])
	}
	if err := enter(); err != nil {
		println("soak:", err.Error())
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// TestFindsFaults: an init with a fault does not get through the soak.
func TestFindsFaults(t *testing.T) {
	for _, fault := range []string{"descriptors", "threads", "zombies", "memory", "wakeups"} {
		t.Run(fault, func(t *testing.T) {
			err := soak(t.Context(), "bad:"+fault, 5*time.Second, 1)
			if err == nil || !strings.HasPrefix(err.Error(), fault) {
				t.Errorf("%v", err)
			}
		})
	}
}
