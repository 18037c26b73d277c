// Command web is an HTTP server and its client.
package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"example.com/guest/internal/check"
)

func main() {
	self, err := os.Executable()
	check.Nil(err, "executable")
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "hello %s", r.URL.Path)
	})
	mux.HandleFunc("/echo", func(w http.ResponseWriter, r *http.Request) { io.Copy(w, r.Body) })
	mux.HandleFunc("/self", func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, self) })
	l, err := net.Listen("tcp", ":0")
	check.Nil(err, "listen")
	go http.Serve(l, mux)
	_, port, _ := net.SplitHostPort(l.Addr().String())
	url := "http://localhost:" + port
	client := &http.Client{Timeout: 30 * time.Second}

	get := func(path string) []byte {
		resp, err := client.Get(url + path)
		check.Nil(err, path)
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		check.Nil(err, path)
		return b
	}
	check.Equal(string(get("/x")), "hello /x", "/x")
	want, err := os.ReadFile(self)
	check.Nil(err, "read")
	check.That(bytes.Equal(get("/self"), want), "a file was served with other contents")

	body := bytes.Repeat([]byte("0123456789"), 100_000)
	resp, err := client.Post(url+"/echo", "text/plain", bytes.NewReader(body))
	check.Nil(err, "post")
	b, err := io.ReadAll(resp.Body)
	check.That(bytes.Equal(b, body) && err == nil, "echo of %d bytes: %d, %v", len(body), len(b), err)

	var wg sync.WaitGroup
	for i := range 32 {
		wg.Go(func() {
			for j := range 20 {
				path := fmt.Sprintf("/%d/%d", i, j)
				check.Equal(string(get(path)), "hello "+path, path)
			}
		})
	}
	wg.Wait()
	check.Done()
}
