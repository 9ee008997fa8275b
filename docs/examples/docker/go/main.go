// Server is an HTTP server like many: it does nothing about signals, so that TERM
// kills it at once, with whatever it was about to answer.
package main

import (
	"io"
	"log"
	"net/http"
	"time"
)

func main() {
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			time.Sleep(4 * time.Second)
		}
		io.WriteString(w, "ok\n")
	})
	log.Fatal(http.ListenAndServe(":8080", nil))
}
