// Demo is the demo of the laboratory as a program of its own, which is soon compiled: package
// rollout does without net/http, whose TLS takes longer to compile than the demo to play.
package main

import (
	"os"

	"github.com/lameduck-init/lameduck/cmd/lab/internal/rollout"
	"github.com/lameduck-init/lameduck/cmd/lab/internal/stage"
)

func main() {
	args := os.Args[1:]
	if len(args) == 0 || args[0] != "rollout" { // the name of a role
		args = append([]string{"demo"}, args...)
	}
	stage.Main(args, stage.Commands{"demo": rollout.Demo}, stage.Roles{"rollout": rollout.Roles})
}
