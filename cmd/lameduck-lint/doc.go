// Command lameduck-lint reads Kubernetes manifests and Dockerfiles, and reports what would
// go wrong at a stop; see docs/lint.md.
//
//		file -> manifest -> pod -> container -+-> program: what the words run
//		     -> image -----------> container -+-> instance: what lameduck makes of the words
//
//	  - A finding is a certain fault or a real risk. If a fact is unknown (an image's
//	    entrypoint, a value from a ConfigMap), findings that depend on the fact are left out.
//	  - Flags, values, variables and their errors are the product's own: cmd/internal/cli.
//	    The arithmetic of the grace period and the stop signals are package shim's: Validate
//	    and Explain.
//	  - A finding has the line that has to be changed.
package main
