package show

import (
	"fmt"
	"strings"

	"loam/gen"
	"loam/gen/pace"
)

// keys handles the keys of the live view that change the rate of a run.
type keys struct {
	control *gen.Control // nil: the rate cannot be changed
	typing  bool         // a rate is being typed
	typed   string
	before  float64 // factor of the rates before the pause
	wrong   string  // reason why the last change was refused; "": it was not
}

// step is the factor by which one press of + or - changes the rates.
const step = 1.1

// press handles the press of a key. name is the name of the key, and text the characters that it types.
func (k *keys) press(name, text string) {
	if k.control == nil {
		return
	}
	if k.typing {
		k.edit(name, text)
		return
	}
	state, err := k.control.State()
	if err != nil {
		return // the run is not sending yet, or no longer
	}
	k.wrong = ""
	switch name {
	case "+", "=", "up":
		err = k.control.Scale(state.Factor * step)
	case "-", "_", "down":
		err = k.control.Scale(state.Factor / step)
	case "0":
		err = k.control.Scale(1)
	case "space":
		next := 0.0
		if state.Factor == 0 {
			next = max(k.before, gen.MinFactor)
		}
		k.before = state.Factor
		err = k.control.Scale(next)
	case "r":
		k.typing, k.typed = true, ""
	}
	k.refuse(err)
}

// edit handles the press of a key while a rate is being typed.
func (k *keys) edit(name, text string) {
	switch name {
	case "esc":
		k.typing = false
	case "backspace":
		if runes := []rune(k.typed); len(runes) > 0 {
			k.typed = string(runes[:len(runes)-1])
		}
	case "enter":
		k.typing = false
		k.refuse(k.set(strings.TrimSpace(k.typed)))
	default:
		k.typed += text
	}
}

// set sets the rate of all streams or, if text has the form "NAME RATE", of one stream. It resets the factor, which
// also ends a pause.
func (k *keys) set(text string) error {
	name := ""
	if i := strings.LastIndexByte(text, ' '); i >= 0 {
		name, text = strings.TrimSpace(text[:i]), text[i+1:]
	}
	r, err := pace.ParseRate(text)
	if err != nil {
		return err
	}
	if err := k.control.SetRate(name, r); err != nil {
		return err
	}
	return k.control.Scale(1)
}

// refuse stores the reason why a change was refused, for display.
func (k *keys) refuse(err error) {
	if err != nil {
		k.wrong = err.Error()
	}
}

// lines returns the lines at the bottom of the view: the factor if it is not 1, the reason of a refusal, and the keys.
func (k *keys) lines(width int) (lines []string) {
	if k.control == nil {
		return []string{"  q ends the run"}
	}
	if k.typing {
		return []string{"  rate for all streams, or NAME RATE: " + k.typed + "▏", "  enter sets it, esc leaves it"}
	}
	if state, err := k.control.State(); err == nil && state.Factor != 1 {
		now := fmt.Sprintf("  at %.4g %% of the rates", 100*state.Factor)
		if state.Factor == 0 {
			now = "  paused"
		}
		lines = append(lines, now)
	}
	if k.wrong != "" {
		lines = append(lines, join(width, " ", strings.Fields(k.wrong))...)
	}
	return append(lines, wrap(width, "+ - faster, slower", "0 as asked", "r a rate", "space pause", "q ends the run")...)
}
