//go:build !amd64 && !arm64

package sig

// handle is for machines that have the entry point.
func handle() {}
