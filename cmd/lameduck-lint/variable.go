package main

// variable is an environment variable in a file.
type variable struct {
	name  string
	value word
}

// last returns the last variable of a name, or nil.
func last(env []variable, name string) *variable {
	for i := len(env) - 1; i >= 0; i-- {
		if env[i].name == name {
			return &env[i]
		}
	}
	return nil
}
