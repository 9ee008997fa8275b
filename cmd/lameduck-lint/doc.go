// Command lameduck-lint reads Kubernetes manifests and Dockerfiles, and reports what would
// go wrong at a stop; see docs/lint.md.
//
//		file -> manifest -> pod -> container -+-> command: where the words call lameduck
//		     -> image -----------> container -+-> lameduck: what it makes of its words
//		                                      +-> rules: each a function of the container
//
//	  - A finding is a certain fault or a real risk. If a fact is unknown (an image's
//	    entrypoint, a value from a ConfigMap), findings that depend on the fact are left out.
//	  - Flags, values, variables and their errors are the product's own: cmd/internal/cli.
//	    The arithmetic of the grace period, the presets and the stop signals are package
//	    shim's: the rules judge an Outline.
//	  - A finding has the line that has to be changed.
package main
