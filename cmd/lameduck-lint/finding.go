package main

// finding is a fault in a file, with the remedy.
type finding struct {
	File      string `json:"file"`
	Line      int    `json:"line"`
	Rule      string `json:"rule"`
	Text      string `json:"message"`
	Object    string `json:"object,omitempty"` // KIND/NAME; "": a Dockerfile
	Container string `json:"container,omitempty"`
}
