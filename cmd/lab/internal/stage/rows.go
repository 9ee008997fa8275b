package stage

import "github.com/lameduck-init/lameduck/internal/plays"

// Rows reads a table.
var Rows = plays.Rows
