// Package plan makes a plan of a configuration, in one pass:
//
//	Config ─> grace period ─> gate ─> signals ─> preset ─> warnings ─> contradictions ─> Plan
//
// A [Plan] has what the stop machine, the judgment of traffic and the report work by. Nothing
// changes a plan: a server that is recognized later makes another one. [Review] makes the plan that
// people look at before it runs; package report explains it in words.
//
// The package is pure: what it has to know of the process and its machine is a [Place].
package plan
