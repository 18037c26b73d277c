package main

import (
	"errors"
	"net"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"loam/wire"
)

// The flags of the packet engine are stored directly in the option structs of its packages. A flag whose text must be
// parsed has the type value. Its parse function is in the package that defines the option.

// value is a flag whose text is parsed into an option.
type value[T any] struct {
	to    *T
	parse func(string) (T, error)
	text  string // text of the flag as given, or its default
}

// Set implements pflag.Value.
func (v *value[T]) Set(s string) error {
	parsed, err := v.parse(s)
	if err != nil {
		return &valueError{err}
	}
	*v.to, v.text = parsed, s
	return nil
}

// String implements pflag.Value.
func (v *value[T]) String() string { return v.text }

// Type implements pflag.Value.
func (v *value[T]) Type() string { return "string" }

// list is a flag that may be given several times, once for each element of an option.
type list[T any] struct {
	to    *[]T
	parse func(string) (T, error)
}

// Set implements pflag.Value.
func (l *list[T]) Set(s string) error {
	parsed, err := l.parse(s)
	if err != nil {
		return &valueError{err}
	}
	*l.to = append(*l.to, parsed)
	return nil
}

// String implements pflag.Value.
func (l *list[T]) String() string { return "" }

// Type implements pflag.Value.
func (l *list[T]) Type() string { return "string" }

// parsedFlag registers a flag whose text is parsed into an option. The option must already have its default value; text
// is the default as users write it.
func parsedFlag[T any](flags *pflag.FlagSet, to *T, parse func(string) (T, error), name, text, usage string) {
	flags.Var(&value[T]{to, parse, text}, name, usage)
}

// listFlag registers a flag that may be given several times.
func listFlag[T any](flags *pflag.FlagSet, to *[]T, parse func(string) (T, error), name, usage string) {
	flags.Var(&list[T]{to, parse}, name, usage)
}

// valueError is an error of a parse function.
type valueError struct{ err error }

func (e *valueError) Error() string { return e.err.Error() }
func (e *valueError) Unwrap() error { return e.err }

// wrongValue returns the error for a flag whose value a parse function has rejected. ok is false for other errors.
func wrongValue(cmd *cobra.Command, err error) (wrong error, ok bool) {
	var invalid *pflag.InvalidValueError
	var value *valueError
	if !errors.As(err, &invalid) || !errors.As(err, &value) {
		return nil, false
	}
	flag, do := invalid.GetFlag().Name, "see "+cmd.CommandPath()+" --help"
	name := "--" + flag + " "
	var usage *usageError
	if errors.As(value.err, &usage) {
		return &usageError{name + usage.wrong, usage.do}, true
	}
	return &usageError{name + strings.TrimPrefix(value.err.Error(), flag+": "), do}, true
}

// parseMAC parses an Ethernet address.
func parseMAC(s string) (m wire.MAC, err error) {
	b, err := net.ParseMAC(s)
	if err != nil || len(b) != len(m) {
		return m, &usageError{s + " is no address of Ethernet", "write it as 02:00:00:00:00:01"}
	}
	return wire.MAC(b), nil
}
