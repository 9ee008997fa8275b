// Command lameduck-lint reads Kubernetes manifests, Dockerfiles and what other platforms have in their
// place, and reports what would go wrong at a stop; see docs/lint.md.
//
//	file -> manifest -> pod -+-> container -> stop -> subject -> rules.txt: what is wrong
//	     -> image -----------+                 |
//	        (platforms.txt:                    +-> known.txt: images, servers and hooks by their names
//	         other names)                      +-> lameduck: what it makes of its words
//	                                           +-> command: what words run, behind inits and shells
//	                                               +-> shell: the commands of a script
//
//	  - A container is what a file says, with lines. A stop is what this comes to, and a rule
//	    judges a stop, or a part of it.
//	  - What is known of programs is data. A new image, runner, server or hook is a line or a block
//	    of a table. A rule asks for fields of Go's types by their names; code is what computes them.
//	  - A finding is a certain fault or a real risk. If a fact is unknown (an image's
//	    entrypoint, a value from a ConfigMap), findings that depend on the fact are left out.
//	  - Flags, values, variables and their errors are the product's own: cmd/internal/cli.
//	    The arithmetic of the grace period, the presets and the stop signals are package
//	    shim's: the rules judge a Plan.
//	  - A finding has the line that has to be changed; of a script beside a Dockerfile, the line
//	    that runs the script.
package main
