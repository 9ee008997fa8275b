// Server is an HTTP server without signal handling, like many: TERM kills the server at
// once, with all requests in flight.
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
