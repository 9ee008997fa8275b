// Command lameduck-lint reads Kubernetes manifests and Dockerfiles, and reports what would
// go wrong at a stop; see docs/lint.md.
//
//	file -> manifest -> pod -+-> container -> stop -> rules
//	     -> image -----------+                 |
//	                                           +-> lameduck: what it makes of its words
//	                                           +-> command: what words run, behind inits and shells
//	                                           |   +-> shell: the commands of a script
//	                                           +-> known: images and servers by their names
//
//	  - A container is what a file says, with lines. A stop is what this comes to, and a rule
//	    judges a stop.
//	  - A finding is a certain fault or a real risk. If a fact is unknown (an image's
//	    entrypoint, a value from a ConfigMap), findings that depend on the fact are left out.
//	  - Flags, values, variables and their errors are the product's own: cmd/internal/cli.
//	    The arithmetic of the grace period, the presets and the stop signals are package
//	    shim's: the rules judge an Outline.
//	  - A finding has the line that has to be changed; of a script beside a Dockerfile, the line
//	    that runs the script.
package main
