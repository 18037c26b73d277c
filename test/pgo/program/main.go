// Command program is a server whose own profile is taken while it is under load.
//
//	GET  /        a short text
//	GET  /bulk    64 MiB of zeroes
//	POST /bulk    reads and discards the body
//	/debug/pprof  profiles
package main

import (
	"io"
	"log"
	"net/http"
	_ "net/http/pprof"
)

const bulk = 64 << 20

func main() {
	http.HandleFunc("/{$}", func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "It works.\n")
	})
	http.HandleFunc("GET /bulk", func(w http.ResponseWriter, _ *http.Request) {
		block := make([]byte, 64<<10)
		for range bulk / len(block) {
			if _, err := w.Write(block); err != nil {
				return
			}
		}
	})
	http.HandleFunc("POST /bulk", func(_ http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
	})
	log.Fatal(http.ListenAndServe(":8080", nil))
}
