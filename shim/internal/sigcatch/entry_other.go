//go:build !amd64 && !arm64

package sigcatch

// handle is never called: the entry point exists for amd64 and arm64 alone.
func handle() {}
