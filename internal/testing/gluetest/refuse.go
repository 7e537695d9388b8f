package gluetest

import "net/http"

// RefuseSome lets BatchCreatePartition create but the partitions with such values, whose
// error is inside the good answer.
func RefuseSome(code string, refused func(values []string) bool) Fault {
	return func(x *Exchange, _ Next) (Answer, error) {
		x.server.mu.Lock()
		defer x.server.mu.Unlock()
		s := &x.server.mu.store
		return answer(s.batch(x.Call, "PartitionInputList", 100, func(t *table, in object) error {
			values, err := texts(in.get("Values"))
			if err == nil && refused(values) {
				return &Failure{Status: http.StatusBadRequest, Code: code, Message: "refused by a fault"}
			}
			return s.create(t, x.Call, in)
		})), nil
	}
}
