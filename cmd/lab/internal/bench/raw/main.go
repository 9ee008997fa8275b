// Raw is two commands without any runtime: starting Go's runtime and waking its threads
// takes longer than most inits do, and would hide the difference. The linker sets the
// entry point: -E main.nothing exits with 0, -E main.answer writes a byte when ready, and
// another for each USR1.
package main

func nothing()
func answer()

func main() {
	nothing()
	answer()
}
