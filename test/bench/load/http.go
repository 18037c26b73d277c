package load

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"
)

// HTTP is a client, on Linux, of the program of package guest.
type HTTP struct{ Server netip.AddrPort }

// FirstAnswer waits until the server answers a request. It starts another attempt each
// time the duration between has passed, which limits the resolution of the measurement.
// Earlier attempts continue, so a server that takes its time is not asked to start over.
func (h HTTP) FirstAnswer(ctx context.Context, between time.Duration) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	answered := make(chan struct{}, 1) // the first attempt that succeeds sends to it; full: an attempt has succeeded already
	tick := time.NewTicker(between)
	defer tick.Stop()
	for {
		go func() {
			if h.try(ctx) != nil {
				return
			}
			select {
			case answered <- struct{}{}:
			default:
			}
		}()
		select {
		case <-answered:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// try makes one request.
func (h HTTP) try(ctx context.Context) error {
	c, err := new(net.Dialer).DialContext(ctx, "tcp", h.Server.String())
	if err != nil {
		return err
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { c.Close() })()
	_, err = newExchange(c, h.Server)
	return err
}

// Requests keeps one request outstanding on each of conns persistent connections for span. It returns
// the number of answered requests and the time that they took.
func (h HTTP) Requests(conns int, span time.Duration) (count int, took time.Duration, err error) {
	var exchanges []*exchange
	for range conns {
		c, err := net.Dial("tcp", h.Server.String())
		if err != nil {
			return 0, 0, err
		}
		defer c.Close()
		e, err := newExchange(c, h.Server)
		if err != nil {
			return 0, 0, err
		}
		exchanges = append(exchanges, e)
	}
	var (
		running sync.WaitGroup
		counts  = make([]int, conns)
		errs    = make([]error, conns)
		start   = time.Now()
		end     = start.Add(span)
	)
	for i, e := range exchanges {
		running.Go(func() { counts[i], errs[i] = e.until(end) })
	}
	running.Wait()
	took = time.Since(start)
	for _, n := range counts {
		count += n
	}
	return count, took, errors.Join(errs...)
}

// exchange is a connection that sends the same request repeatedly. All responses have the size of the
// first one, so the client needs little CPU time.
type exchange struct {
	c       net.Conn
	request []byte
	answer  []byte
}

const wantedStatus = "HTTP/1.1 200 OK\r\n"

// newExchange sends the first request and reads its response.
func newExchange(c net.Conn, server netip.AddrPort) (*exchange, error) {
	e := &exchange{c: c, request: []byte("GET / HTTP/1.1\r\nHost: " + server.String() + "\r\n\r\n")}
	if _, err := c.Write(e.request); err != nil {
		return nil, err
	}
	var raw strings.Builder
	in := bufio.NewReader(io.TeeReader(c, &raw))
	answer, err := http.ReadResponse(in, nil)
	if err != nil {
		return nil, err
	}
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		return nil, err
	}
	if e.answer = make([]byte, raw.Len()); !strings.HasPrefix(raw.String(), wantedStatus) {
		return nil, fmt.Errorf("the server says %q", raw.String())
	}
	return e, nil
}

// until sends requests until a time, the parameter end, and returns the number of
// responses.
func (e *exchange) until(end time.Time) (n int, err error) {
	for ; time.Now().Before(end); n++ {
		if _, err := e.c.Write(e.request); err != nil {
			return n, err
		}
		if _, err := io.ReadFull(e.c, e.answer); err != nil {
			return n, err
		}
		if !strings.HasPrefix(string(e.answer[:len(wantedStatus)]), wantedStatus) {
			return n, fmt.Errorf("the server says %q", e.answer)
		}
	}
	return n, nil
}

// Get requests a path and decodes the JSON response into a variable. The parameter into
// is a pointer to the variable.
func (h HTTP) Get(path string, into any) error {
	client := http.Client{Timeout: time.Minute}
	defer client.CloseIdleConnections()
	answer, err := client.Get("http://" + h.Server.String() + path)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(answer.Body)
		return fmt.Errorf("%s: %s: %s", path, answer.Status, strings.TrimSpace(string(text)))
	}
	return json.NewDecoder(answer.Body).Decode(into)
}

// Upload sends the body of one HTTPS request for span. It returns the bytes that the server has read and
// the time until its response. The TLS handshake precedes the measurement.
func (h HTTP) Upload(span time.Duration) (bytes int64, took time.Duration, err error) {
	client := http.Client{Timeout: span + time.Minute, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	defer client.CloseIdleConnections()
	url := "https://" + h.Server.String() + "/upload"
	if _, err := post(&client, url, strings.NewReader("shake hands")); err != nil {
		return 0, 0, err
	}
	start := time.Now()
	body := &zeros{end: start.Add(span)}
	bytes, err = post(&client, url, body)
	if err == nil && bytes != body.sent {
		err = fmt.Errorf("the server read %d bytes of %d", bytes, body.sent)
	}
	return bytes, time.Since(start), err
}

// post sends a body, and returns the number of bytes that the server has read.
func post(client *http.Client, url string, body io.Reader) (n int64, err error) {
	answer, err := client.Post(url, "application/octet-stream", body)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return 0, errors.New(answer.Status)
	}
	return n, json.NewDecoder(answer.Body).Decode(&n)
}

// zeros is a body that ends at a time.
type zeros struct {
	end  time.Time
	sent int64
}

func (z *zeros) Read(p []byte) (int, error) {
	if time.Now().After(z.end) {
		return 0, io.EOF
	}
	clear(p)
	z.sent += int64(len(p))
	return len(p), nil
}
