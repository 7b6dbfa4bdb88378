package neutron

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/pagination"
)

// pageSize is the number of resources asked for in one request. Neutron may
// give fewer (pagination_max_limit).
const pageSize = 1000

// page is one page of a list. gophercloud's pages take an answer without the
// list for an empty one, and follow the links to whatever host they name.
type page struct {
	pagination.PageResult
	key string
}

func (p page) IsEmpty() (bool, error) {
	body, _ := p.Body.(map[string]any)
	items, ok := body[p.key].([]any)
	if !ok {
		return false, fmt.Errorf("answer holds no list %q", p.key)
	}
	return len(items) == 0, nil
}

// NextPageURL is the URL of this page with the marker of the next one. Nothing
// else of the link is used: it names the host Neutron believes it has, and the
// token must not go elsewhere.
func (p page) NextPageURL() (string, error) {
	key := p.key + "_links"
	if body, _ := p.Body.(map[string]any); body[key] == nil {
		return "", nil
	}
	var links []gophercloud.Link
	if err := extract(p.Result, key, &links); err != nil {
		return "", err
	}
	href, err := gophercloud.ExtractNextURL(links)
	if err != nil || href == "" {
		return "", err
	}
	link, err := url.Parse(href)
	if err != nil {
		return "", errors.New("link to the next page is not a URL")
	}
	query := p.Query()
	marker := link.Query().Get("marker")
	if marker == "" || marker == query.Get("marker") {
		return "", errors.New("link to the next page leads nowhere")
	}
	query.Set("marker", marker)
	next := p.URL
	next.RawQuery = query.Encode()
	return next.String(), nil
}

func (p page) GetBody() any { return p.Body }

// list reads all pages. An error leaves nothing: half a list would make the
// rest look deleted.
func list[T any](ctx context.Context, pager pagination.Pager, key string) ([]T, error) {
	if pager.Err != nil {
		return nil, pager.Err
	}
	var all []T
	err := pager.WithPageCreator(func(r pagination.PageResult) pagination.Page {
		return page{PageResult: r, key: key}
	}).EachPage(ctx, func(_ context.Context, p pagination.Page) (bool, error) {
		var items []T
		err := extract(p.(page).Result, key, &items)
		all = append(all, items...)
		return true, err
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}
