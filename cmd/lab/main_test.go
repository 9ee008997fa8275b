package main

import (
	"os"
	"testing"
)

// The test binary is the lab too, and all that the lab starts of itself.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && (os.Args[1] == "stage" || os.Args[1] == "serve") {
		main()
		return
	}
	if len(os.Args) > 1 && os.Args[1] == "lab" {
		// It starts itself again with the same words.
		if err := lab(os.Args[2:]); err != nil {
			println("lab:", err.Error())
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}
