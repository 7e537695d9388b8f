// Command plot draws what the read benchmark measured: by case, how much better the
// mount is than the best peer and than a plain program, and the resident memory of
// both. It reads the cases as JSON from its standard input and writes an SVG.
package main

import (
	"encoding/json"
	"fmt"
	"image/color"
	"io"
	"math"
	"os"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// bars are of one case. A figure of zero is not drawn.
type bars struct {
	Case     string  `json:"case"`
	Peer     string  `json:"peer"`
	Ratio    float64 `json:"ratio"`
	Plain    float64 `json:"plain"`
	RSS      float64 `json:"rss"`
	PeersRSS float64 `json:"peers_rss"`
}

const (
	barWidth = vg.Length(6)
	rowSpace = vg.Length(26)
	most     = 64 // a ratio that is larger is drawn as this one
)

func main() {
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "plot:", err)
		os.Exit(1)
	}
}

func run(from io.Reader, to io.Writer) error {
	var cases []bars
	if err := json.NewDecoder(from).Decode(&cases); err != nil {
		return err
	}
	slices.Reverse(cases) // the first is drawn on top
	ratios, err := ratioPlot(cases)
	if err != nil {
		return err
	}
	memory, err := memoryPlot(cases)
	if err != nil {
		return err
	}
	height := rowSpace*vg.Length(len(cases)) + 90
	canvas := vgsvg.New(900, height)
	plots := [][]*plot.Plot{{ratios, memory}}
	tiles := draw.Tiles{Rows: 1, Cols: 2, PadX: vg.Millimeter * 6, PadTop: 4, PadBottom: 4, PadLeft: 4, PadRight: 12}
	for i, c := range plot.Align(plots, tiles, draw.New(canvas))[0] {
		plots[0][i].Draw(c)
	}
	_, err = canvas.WriteTo(to)
	return err
}

var (
	blue   = color.RGBA{R: 0x1f, G: 0x77, B: 0xb4, A: 0xff}
	grey   = color.RGBA{R: 0xb0, G: 0xb0, B: 0xb0, A: 0xff}
	orange = color.RGBA{R: 0xff, G: 0x7f, B: 0x0e, A: 0xff}
)

// ratioPlot has a logarithmic axis with bars from 1, which plotter.BarChart draws
// when they are logarithms.
func ratioPlot(cases []bars) (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text = "better than the best peer, than a plain program (times)"
	p.X.Tick.Marker = powers{}
	p.X.Min, p.X.Max = -2, math.Log2(most)
	labels := make([]string, len(cases))
	for i, c := range cases {
		labels[i] = c.Case
		if c.Peer != "" {
			labels[i] += " (" + c.Peer + ")"
		}
	}
	err := pairs(p, cases, "best peer", blue, "plain program", grey, func(b bars) (float64, float64) { return logarithm(b.Ratio), logarithm(b.Plain) })
	if err != nil {
		return nil, err
	}
	p.NominalY(labels...)
	line, err := plotter.NewLine(plotter.XYs{{X: 0, Y: -0.5}, {X: 0, Y: float64(len(cases)) - 0.5}})
	if err != nil {
		return nil, err
	}
	p.Add(line)
	p.Y.Min, p.Y.Max = span(cases)
	return p, nil
}

func memoryPlot(cases []bars) (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text = "peak resident memory (MiB)"
	p.X.Min = 0
	if err := pairs(p, cases, "lakefs-mount", orange, "best peer", grey, func(b bars) (float64, float64) { return b.RSS, b.PeersRSS }); err != nil {
		return nil, err
	}
	p.NominalY(make([]string, len(cases))...)
	p.Y.Min, p.Y.Max = span(cases)
	return p, nil
}

// pairs draws two bars for each case.
func pairs(p *plot.Plot, cases []bars, first string, one color.Color, second string, two color.Color, of func(bars) (float64, float64)) error {
	var a, b plotter.Values
	for _, c := range cases {
		x, y := of(c)
		a, b = append(a, x), append(b, y)
	}
	p.Add(plotter.NewGrid())
	for _, set := range []struct {
		values plotter.Values
		name   string
		color  color.Color
		offset vg.Length
	}{{a, first, one, barWidth / 2}, {b, second, two, -barWidth / 2}} {
		chart, err := plotter.NewBarChart(set.values, barWidth)
		if err != nil {
			return err
		}
		chart.Horizontal, chart.Color, chart.LineStyle.Width, chart.Offset = true, set.color, 0, set.offset
		p.Add(chart)
		p.Legend.Add(set.name, chart)
	}
	p.Legend.Top = true
	return nil
}

// span is that of both plots, which stand side by side, with room for the legend.
func span(cases []bars) (least, greatest float64) { return -0.6, float64(len(cases)) + 0.4 }

// logarithm is to base 2, within what is drawn.
func logarithm(x float64) float64 {
	if x == 0 {
		return 0
	}
	return max(-2, min(math.Log2(most), math.Log2(x)))
}

// powers are the ticks of a logarithmic axis.
type powers struct{}

// Ticks are the powers of two.
func (powers) Ticks(least, greatest float64) []plot.Tick {
	var all []plot.Tick
	for e := math.Ceil(least); e <= greatest; e++ {
		all = append(all, plot.Tick{Value: e, Label: fmt.Sprintf("%g", math.Pow(2, e))})
	}
	return all
}
