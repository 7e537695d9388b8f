package main

import (
	"fmt"
	"strings"

	"github.com/lakefs-mount/lakefs-mount/internal/warehouse"
)

// demoOrder is a row of the demo's orders.
type demoOrder struct {
	OrderID  int64   `parquet:"order_id"`
	Customer string  `parquet:"customer"`
	Amount   float64 `parquet:"amount"`
}

// demoTables are the tables of the demo, the same ones each time: two databases
// of good ones in three formats, one of what a mount refuses.
func demoTables() ([]warehouse.Table, error) {
	orders, err := demoOrders()
	if err != nil {
		return nil, err
	}
	return []warehouse.Table{
		{
			Database: "sales", Name: "orders",
			Columns: []string{"order_id:bigint", "customer:string", "amount:double"}, Keys: []string{"dt:date", "region"}, Files: orders,
		},
		{
			Database: "sales", Name: "countries", Format: "csv", Columns: []string{"code", "name", "region"},
			Files: map[string]string{"countries.csv": "DE,Germany,eu\nFR,France,eu\nJP,Japan,asia\nNZ,New Zealand,oceania\nUS,United States,us\n"},
		},
		{
			Database: "sales", Name: "big_orders", Type: "VIRTUAL_VIEW", Columns: []string{"order_id:bigint", "customer:string", "amount:double"},
			ViewText: "SELECT order_id, customer, amount FROM sales.orders WHERE amount > 100",
		},
		{
			Database: "web", Name: "clicks", Format: "csv", Columns: []string{"at:timestamp", "url", "visitor:bigint"}, Keys: []string{"dt:date"},
			Files: map[string]string{
				"dt=2026-01-01/clicks.csv": demoClicks("2026-01-01", 200),
				"dt=2026-01-02/clicks.csv": demoClicks("2026-01-02", 300),
			},
		},
		{
			Database: "web", Name: "events", Format: "json", Columns: []string{"id:bigint", "kind", "path"}, Keys: []string{"page"},
			Files: map[string]string{
				"page=%2Fcart%3Fstep%3D1/000000_0":         demoEvents("/cart?step=1", 40),
				"page=50%25 off/000000_0":                  demoEvents("50% off", 20),
				"page=café/000000_0":                       demoEvents("café", 10),
				"page=__HIVE_DEFAULT_PARTITION__/000000_0": demoEvents("", 5),
			},
		},
		{Database: "broken", Name: "cut", Manifest: "{\n  \"manifest_version\": 1,\n  \"name\": \"cut\",\n  \"storage_desc"},
		{Database: "broken", Name: "outside", Location: "/etc"},
	}, nil
}

func demoOrders() (map[string]string, error) {
	files := map[string]string{}
	customers := []string{"Ada", "Grace", "Edsger", "Barbara", "Tony"}
	id := int64(1)
	for _, partition := range []string{
		"dt=2026-01-01/region=eu", "dt=2026-01-01/region=us", "dt=2026-01-02/region=eu",
		"dt=2026-01-02/region=__HIVE_DEFAULT_PARTITION__",
	} {
		rows := make([]demoOrder, 0, 1000)
		for range 1000 {
			rows = append(rows, demoOrder{OrderID: id, Customer: customers[id%int64(len(customers))], Amount: float64(id*37%25000) / 100})
			id++
		}
		file, err := warehouse.Parquet(rows)
		if err != nil {
			return nil, err
		}
		files[partition+"/part-0000.parquet"] = file
	}
	return files, nil
}

func demoClicks(day string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%s %02d:%02d:%02d,/product/%d,%d\n", day, i*7%24, i*13%60, i*29%60, i*31%97, 1000+i*17%50)
	}
	return b.String()
}

func demoEvents(page string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "{\"id\": %d, \"kind\": %q, \"path\": %q}\n", i, []string{"view", "click", "leave"}[i%3], page)
	}
	return b.String()
}
