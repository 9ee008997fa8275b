// Lint reads Kubernetes manifests and Dockerfiles, and says what would go wrong at a
// stop; see docs/lint.md.
//
//		file -> manifest -> pod -> container -+-> program: what its words run
//		     -> image -----------> container -+-> duck: what lameduck makes of them
//
//	  - What it says is sure to be wrong, or a real risk. Where something is not known
//	    (an image's entrypoint, a value from elsewhere) it goes by what is, and what
//	    would need more it does not say.
//	  - The arithmetic of the grace period, what begins a stop, and most values are
//	    the product's own: package shim's Validate, Explain and Parse functions. The
//	    names of the flags, and what they do together, are not in shim; a test holds
//	    those here against the program itself.
//	  - A finding has the line that somebody would change.
package main
