// Command program is the program that is measured as a whole: a small HTTP server of the standard
// library that also reports its costs. It does not know about Loam. The same source runs on Loam and on
// Linux, as a process and in a virtual machine.
//
//	/        a short text: for counting requests
//	/memory  MemAvailable of /proc/meminfo, in bytes
//	/write   the cost of writing one byte to /dev/null, as JSON
//	/upload  reads the body of the request, and returns its length
//
// It listens by HTTP and, on another port, by HTTPS with a certificate of its own.
package main

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"math/big"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

func main() {
	addr := flag.String("addr", ":8080", "where to listen by HTTP")
	tlsAddr := flag.String("tls", ":8443", "where to listen by HTTPS")
	flag.Parse()
	http.HandleFunc("/{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Write([]byte("It works, and that is all that it says.\n"))
	})
	http.HandleFunc("/memory", answer(available))
	http.HandleFunc("/write", answer(costs))
	http.HandleFunc("/upload", upload)
	secure := http.Server{Addr: *tlsAddr, TLSConfig: &tls.Config{
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return certificate() },
		NextProtos:     []string{"http/1.1"},
	}}
	go func() { log.Fatal(secure.ListenAndServeTLS("", "")) }()
	log.Fatal(http.ListenAndServe(*addr, nil))
}

// certificate returns a self-signed certificate. It is made at its first use, so that it does not delay
// the first answer.
var certificate = sync.OnceValues(func() (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	form := x509.Certificate{SerialNumber: big.NewInt(1)}
	der, err := x509.CreateCertificate(rand.Reader, &form, &form, &key.PublicKey, key)
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
})

// upload reads the body and returns the number of its bytes.
func upload(w http.ResponseWriter, r *http.Request) {
	answer(func() (int64, error) { return io.Copy(io.Discard, r.Body) })(w, r)
}

// answer returns a handler that calls f and sends its result as JSON.
func answer[T any](f func() (T, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		v, err := f()
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		json.NewEncoder(w).Encode(v)
	}
}

// available returns the available memory in bytes.
func available() (int64, error) {
	f, err := os.Open("/proc/meminfo")
	if err != nil {
		return 0, err
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		words := strings.Fields(lines.Text())
		if len(words) == 3 && words[0] == "MemAvailable:" {
			kib, err := strconv.ParseInt(words[1], 10, 64)
			return kib << 10, err
		}
	}
	return 0, errors.New("/proc/meminfo has no MemAvailable")
}

// Costs are the nanoseconds of one write of one byte.
type Costs struct {
	Syscall float64 // syscall.Write
	File    float64 // os.File.Write
}

func costs() (c Costs, err error) {
	f, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return c, err
	}
	defer f.Close()
	fd := int(f.Fd())
	if c.Syscall, err = loop(func() (int, error) { return syscall.Write(fd, one) }); err != nil {
		return c, err
	}
	c.File, err = loop(func() (int, error) { return f.Write(one) })
	return c, err
}

// one is the byte to write.
var one = make([]byte, 1)

// batch is the number of writes that are timed together, so that the cost of reading the clock does not
// matter.
const batch = 2000

// span is how long each kind of write is measured.
const span = 300 * time.Millisecond

// loop returns the mean cost of a call of write in the best batch, in ns. Other batches
// include other work of the machine.
func loop(write func() (int, error)) (float64, error) {
	if n, err := write(); n != 1 || err != nil {
		return 0, fmt.Errorf("a write of one byte: %d, %v", n, err)
	}
	best := time.Duration(1 << 62)
	for end := time.Now().Add(span); ; {
		start := time.Now()
		for range batch {
			write()
		}
		now := time.Now()
		best = min(best, now.Sub(start))
		if now.After(end) {
			return float64(best.Nanoseconds()) / batch, nil
		}
	}
}
