//go:build amd64 || arm64

package sig

// entry is declared for vet; only the kernel calls it.
func entry()
