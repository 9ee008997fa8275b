// Raw is two commands without Go's runtime, or any other: to start one, and to
// wake its threads, takes longer than most inits do, and would hide what is
// looked for. The linker is told where to begin: -E main.nothing exits with 0,
// -E main.answer writes a byte when it is ready, and one for each USR1.
package main

func nothing()
func answer()

func main() {
	nothing()
	answer()
}
