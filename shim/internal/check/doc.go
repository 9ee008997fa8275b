// Package check describes health checks: where they arrive and are relayed to, and how they are
// treated. Package health answers them.
//
// The package is pure.
package check
