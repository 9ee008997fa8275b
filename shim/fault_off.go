//go:build linux && !faults

package shim

// fault does nothing. Built with the tag faults, for tests, it panics at what FAULT_AT names.
func fault(any) {}
