package plan

var (
	GraceFor = (*Config).graceFor
	Ceiling  = (*Config).ceiling
)
