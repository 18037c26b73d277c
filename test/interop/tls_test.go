//go:build linux

package interop

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"

	"golang.org/x/sync/errgroup"
)

// TestHTTP2 checks many concurrent streams on one TLS connection, each with a body in both directions,
// between net/http on Loam and net/http on the kernel.
func TestHTTP2(t *testing.T) {
	l := newLab(t, setup{})
	for _, d := range l.directions() {
		ln, err := d.server.listen("tcp", d.server.at(0))
		l.must(err)
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			size, _ := strconv.Atoi(r.Header.Get("Size"))
			if err := receiveStream(r.Body, size); err != nil || r.ProtoMajor != 2 {
				http.Error(w, fmt.Sprint(r.Proto, err), http.StatusBadRequest)
				return
			}
			sendStream(w, size)
		}))
		server.Listener.Close()
		server.Listener, server.EnableHTTP2 = ln, true
		server.StartTLS()
		client := server.Client()
		transport := client.Transport.(*http.Transport)
		transport.DialContext = d.client.dial
		transport.TLSClientConfig.ServerName = "example.com" // the name in the server's certificate
		var g errgroup.Group
		for i := range scale(60, 20) {
			g.Go(func() error { return post(l.ctx, client, server.URL, 100*i*i) })
		}
		if err := g.Wait(); err != nil {
			t.Errorf("%s: %v", d, err)
		}
		server.Close()
	}
}

// post sends a stream of size bytes and checks that the same comes back.
func post(ctx context.Context, client *http.Client, url string, size int) error {
	body, w := io.Pipe()
	go func() { w.CloseWithError(sendStream(w, size)) }()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, body)
	if err != nil {
		return err
	}
	r.Header.Set("Size", strconv.Itoa(size))
	answer, err := client.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(answer.Body)
		return fmt.Errorf("%s: %s", answer.Status, text)
	}
	return receiveStream(answer.Body, size)
}
