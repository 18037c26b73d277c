//go:build linux

package interop

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestCurl checks that curl downloads from, and uploads to, net/http on Loam: a large body in each
// direction, a range, many requests on one connection, and many connections at once.
func TestCurl(t *testing.T) {
	l := newLab(t, setup{})
	size := scale(256, 8) << 20
	web := l.serveWeb(size)
	sum := streamHash(size)
	file := filepath.Join(t.TempDir(), "body")

	l.run("curl", "-sSf", "-o", file, web+"/stream")
	body, err := os.ReadFile(file)
	l.must(err)
	if sha256.Sum256(body) != sum {
		t.Errorf("curl loads %d bytes with another hash", len(body))
	}
	if got := l.run("curl", "-sSf", "-T", file, web+"/sum"); got != hex.EncodeToString(sum[:]) {
		t.Errorf("what curl stores has hash %s, want %x", got, sum)
	}
	if got := l.run("curl", "-sSf", "-r", "1000-1999", web+"/stream"); got != string(block[1000:2000]) {
		t.Errorf("a range of 1000 bytes came as %d others", len(got))
	}
	many := make([]string, 0, 200)
	for i := range cap(many) {
		many = append(many, fmt.Sprintf("%s/echo/%d", web, i))
	}
	format := []string{"-sSf", "-w", "%{num_connects} connects\n"}
	if got := l.run("curl", append(format, many...)...); !strings.HasPrefix(got, "0\n1 connects\n1\n0 connects\n2\n0 connects\n") || strings.Count(got, "\n1 connects\n") != 1 {
		t.Errorf("one after another, on one connection: %.60q", got)
	}
	got := l.run("curl", append([]string{"-sSf", "--no-progress-meter", "--parallel", "--parallel-max", "50"}, many...)...)
	if n := strings.Count(got, "\n"); n != len(many) {
		t.Errorf("at once: %d answers of %d: %q", n, len(many), got)
	}
}

// TestLoaded checks that every request of wrk and ab is answered. ab runs with a connection per request
// and with persistent connections.
func TestLoaded(t *testing.T) {
	l := newLab(t, setup{})
	url := l.serveWeb(0) + "/echo/7"
	requests := fmt.Sprint(scale(5000, 1000))
	for _, keep := range [][]string{nil, {"-k"}} {
		out := l.run("ab", append(keep, "-q", "-s", "60", "-c", "50", "-n", requests, url)...)
		for _, want := range []string{`Complete requests: +` + requests, `Failed requests: +0\n`} {
			if !regexp.MustCompile(want).MatchString(out) || strings.Contains(out, "Non-2xx") {
				t.Errorf("ab %v, of %s requests:\n%s", keep, requests, out)
			}
		}
	}
	out := l.run("wrk", "-t", "1", "-c", "100", "-d", "1s", "--timeout", "60s", url)
	if !strings.Contains(out, " requests in ") || strings.Contains(out, "Socket errors") || strings.Contains(out, "Non-2xx") {
		t.Errorf("wrk says\n%s", out)
	}
}

// serveWeb runs a server on Loam that serves a stream of size bytes, returns the checksum of uploads,
// and echoes. It returns the base URL.
func (l *lab) serveWeb(size int) string {
	l.Helper()
	var mux http.ServeMux
	mux.HandleFunc("GET /stream", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Range") != "" {
			http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(block))
			return
		}
		w.Header().Set("Content-Length", strconv.Itoa(size))
		sendStream(w, size)
	})
	mux.HandleFunc("PUT /sum", func(w http.ResponseWriter, r *http.Request) {
		h := sha256.New()
		io.Copy(h, r.Body)
		fmt.Fprintf(w, "%x", h.Sum(nil))
	})
	mux.HandleFunc("GET /echo/{n}", func(w http.ResponseWriter, r *http.Request) { fmt.Fprintln(w, r.PathValue("n")) })
	ln, err := l.loam.listen("tcp", l.loam.at(80))
	l.must(err)
	server := &http.Server{Handler: &mux}
	go server.Serve(ln)
	l.Cleanup(func() { server.Close() })
	return "http://" + l.loam.at(80) // with the port number, because a minimal system has no /etc/services
}

// TestNginx checks that net/http on Loam downloads a large file from nginx, which sends it with
// sendfile, three times on one connection, and a page that does not exist.
func TestNginx(t *testing.T) {
	l := newLab(t, setup{})
	size := scale(256, 8) << 20
	url := l.startNginx(size)
	client := &http.Client{Transport: &http.Transport{DialContext: l.stack.DialContext}}
	defer client.CloseIdleConnections()
	for range 3 { // three requests on one connection
		r, err := client.Get(url + "/stream")
		l.must(err)
		if err := receiveStream(r.Body, size); err != nil {
			t.Error(err)
		}
		r.Body.Close()
	}
	r, err := client.Get(url + "/none")
	l.must(err)
	r.Body.Close()
	if r.StatusCode != http.StatusNotFound {
		t.Errorf("what is not there: %s", r.Status)
	}
}

// startNginx runs nginx, which serves a file named stream of size bytes, and returns the base URL.
func (l *lab) startNginx(size int) string {
	l.Helper()
	l.need("nginx")
	dir := l.TempDir()
	l.must(os.Chmod(dir, 0o755)) // nginx's worker process, which is not root, must be able to read the file
	l.must(os.Chmod(filepath.Dir(dir), 0o755))
	f, err := os.Create(filepath.Join(dir, "stream"))
	l.must(err)
	l.must(sendStream(f, size))
	l.must(f.Close())
	config := filepath.Join(dir, "nginx.conf")
	l.must(os.WriteFile(config, []byte(fmt.Sprintf(`
		daemon off; master_process off; pid %[1]s/pid; error_log stderr notice; 
		events {}
		http {
			access_log off; sendfile on; tcp_nopush on;
			client_body_temp_path %[1]s/a; proxy_temp_path %[1]s/b; fastcgi_temp_path %[1]s/c; uwsgi_temp_path %[1]s/d; scgi_temp_path %[1]s/e;
			server { listen %[2]s; root %[1]s; }
		}`, dir, l.linux.at(80))), 0o644))
	l.start("nginx", "-e", "stderr", "-c", config).awaitOutput("epoll\" event method")
	return "http://" + l.linux.addr.String()
}
