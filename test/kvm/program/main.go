// Command program runs on Loam under KVM. It is a web server that reports the time, computes, and exits
// on request.
package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"runtime"
	"strconv"
	"time"

	"loam/test/kvm/report"
	"loam/test/kvm/work"
)

func main() {
	begin := time.Now()
	http.HandleFunc("/state", func(w http.ResponseWriter, _ *http.Request) {
		now := time.Now()
		json.NewEncoder(w).Encode(report.State{Wall: now.UnixNano(), Since: now.Sub(begin), CPUs: runtime.NumCPU()})
	})
	http.HandleFunc("/sum", func(w http.ResponseWriter, r *http.Request) {
		seed, _ := strconv.Atoi(r.FormValue("seed"))
		fmt.Fprint(w, work.Sum(seed))
	})
	http.HandleFunc("/end", func(http.ResponseWriter, *http.Request) { os.Exit(report.Status) })
	if err := http.ListenAndServe(":80", nil); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
