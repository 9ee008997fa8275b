//go:build linux && !faults

package shim

// faulty returns h. Built with the tag faults, for tests, it panics at a call.
func faulty(h host) host { return h }
