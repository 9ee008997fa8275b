// Package watch follows every listener of the network namespace, shows the traffic once a second,
// and says what a stop has cost that others carry out.
//
// The sampler, on a goroutine of its own, has each sample judged by package traffic and package
// cost, and sends what they say to Run, which owns all other state.
package watch
