package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// callNeutron makes one call, without a token as the administrator of the
// simulator, and returns the answer as indented JSON, also with the error of a
// status of 400 and above.
func callNeutron(ctx context.Context, token, method, url string, body []byte) (string, error) {
	request, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	if token != "" {
		request.Header.Set("X-Auth-Token", token)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return "", fmt.Errorf("reading the answer to %s %s: %w", method, url, err)
	}
	var indented bytes.Buffer
	if len(answer) > 0 {
		if err := json.Indent(&indented, answer, "", "  "); err != nil {
			return "", fmt.Errorf("reading the answer to %s %s: %w", method, url, err)
		}
		indented.WriteByte('\n')
	}
	if response.StatusCode >= http.StatusBadRequest {
		err = fmt.Errorf("%s %s answered %s", method, url, strings.ToLower(response.Status))
	}
	return indented.String(), err
}
