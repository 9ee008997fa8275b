// Package watch follows every listener of the network namespace, shows the traffic once a second,
// and says what a stop has cost that others carry out.
//
// Run owns all state. The sampler of package observe sends it each sample, judged by package traffic
// as during a hold, and package cost judges the sample before the sampler goes on.
package watch
