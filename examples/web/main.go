// Command web is an ordinary net/http server: it knows nothing of Loam. Its page
// shows what it runs on, with counters that move.
//
//	go run ./examples/web              # on the kernel of this machine
//	loam run -p 8080:8080 ./examples/web   # the same source, on Loam
//
// It ends on an interrupt or SIGTERM, after the requests that are under way.
package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"
)

//go:embed page.html
var page []byte

// maxBytes bounds what /bytes sends.
const maxBytes = 16 << 30

func main() {
	addr := flag.String("addr", ":8080", "where to listen")
	flag.Parse()
	if err := serve(*addr); err != nil {
		log.Fatal(err)
	}
}

func serve(addr string) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	log.Printf("web: listening on %s", l.Addr())
	s := newSite()
	server := &http.Server{Handler: s.handler(), ConnState: s.connState, ReadHeaderTimeout: 10 * time.Second}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	go func() {
		<-ctx.Done()
		close(s.ending)
		patience, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		server.Shutdown(patience)
	}()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	log.Printf("web: served %d requests", s.requests.Load())
	return nil
}

// site is the state behind the page.
type site struct {
	started        time.Time
	requests, sent atomic.Int64
	open, accepted atomic.Int64
	ending         chan struct{} // closed by serve when the server is to end
}

func newSite() *site { return &site{started: time.Now(), ending: make(chan struct{})} }

func (s *site) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Write(page)
	})
	mux.HandleFunc("GET /stats", s.stats)
	mux.HandleFunc("GET /live", s.live)
	mux.HandleFunc("GET /bytes/{n}", s.bytes)
	mux.HandleFunc("POST /upload", s.upload)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.requests.Add(1)
		mux.ServeHTTP(w, r)
	})
}

func (s *site) connState(_ net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		s.open.Add(1)
		s.accepted.Add(1)
	case http.StateClosed, http.StateHijacked:
		s.open.Add(-1)
	}
}

// snapshot holds the values that the page shows.
type snapshot struct {
	Program    string   `json:"program"`
	Host       string   `json:"host"`
	Kernel     string   `json:"kernel"`
	Go         string   `json:"go"`
	CPUs       int      `json:"cpus"`
	Addresses  []string `json:"addresses"`
	Local      string   `json:"local"`
	Remote     string   `json:"remote"`
	Uptime     float64  `json:"uptime"`
	Requests   int64    `json:"requests"`
	Sent       int64    `json:"sent"`
	Open       int64    `json:"open"`
	Accepted   int64    `json:"accepted"`
	Goroutines int      `json:"goroutines"`
	Heap       uint64   `json:"heap"`
}

func (s *site) snapshot(r *http.Request) snapshot {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	host, _ := os.Hostname()
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return snapshot{
		Program: os.Args[0], Host: host, Kernel: kernel(), Go: runtime.Version(), CPUs: runtime.GOMAXPROCS(0),
		Addresses: addresses(), Local: fmt.Sprint(local), Remote: r.RemoteAddr,
		Uptime: time.Since(s.started).Seconds(), Requests: s.requests.Load(), Sent: s.sent.Load(),
		Open: s.open.Load(), Accepted: s.accepted.Load(), Goroutines: runtime.NumGoroutine(), Heap: m.HeapAlloc,
	}
}

// kernel returns the system name and release of uname(2).
func kernel() string {
	var u syscall.Utsname
	if err := syscall.Uname(&u); err != nil {
		return "unknown"
	}
	return text(u.Sysname[:]) + " " + text(u.Release[:])
}

func text(field []int8) string {
	var b []byte
	for _, c := range field {
		if c == 0 {
			break
		}
		b = append(b, byte(c))
	}
	return string(b)
}

func addresses() []string {
	var list []string
	interfaces, err := net.Interfaces()
	if err != nil {
		return []string{err.Error()}
	}
	for _, ifc := range interfaces {
		addrs, _ := ifc.Addrs()
		for _, a := range addrs {
			list = append(list, ifc.Name+" "+a.String())
		}
	}
	return list
}

func (s *site) stats(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(s.snapshot(r))
}

// live sends a snapshot twice a second as server-sent events.
func (s *site) live(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	flush := http.NewResponseController(w)
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for {
		b, _ := json.Marshal(s.snapshot(r))
		if _, err := fmt.Fprintf(w, "data: %s\n\n", b); err != nil {
			return
		}
		if err := flush.Flush(); err != nil {
			return
		}
		select {
		case <-tick.C:
		case <-s.ending:
			return
		case <-r.Context().Done():
			return
		}
	}
}

// bytes sends n bytes.
func (s *site) bytes(w http.ResponseWriter, r *http.Request) {
	n, err := strconv.ParseInt(r.PathValue("n"), 10, 64)
	if err != nil || n < 0 || n > maxBytes {
		http.Error(w, fmt.Sprintf("want a number of bytes from 0 to %d", int64(maxBytes)), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Length", strconv.FormatInt(n, 10))
	w.Header().Set("Content-Type", "application/octet-stream")
	sent, _ := io.Copy(w, io.LimitReader(pattern{}, n))
	s.sent.Add(sent)
}

// upload reads the body and says how long it was.
func (s *site) upload(w http.ResponseWriter, r *http.Request) {
	n, err := io.Copy(io.Discard, r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	fmt.Fprintln(w, n)
}

// pattern is a reader of an endless sequence of letters.
type pattern struct{}

func (pattern) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'a' + byte(i%26)
	}
	return len(p), nil
}
