/** Gateways that lie, played by the page: each asks the true gateway and changes what it says. Their hosts exist nowhere else. */

/** What each kind of liar does, in the order of the page. */
export const kinds = {
  flips: 'changes one byte',
  swaps: 'gives another item, with all of its true headers',
  shifts: 'gives another part than was asked for',
  delays: 'gives old content under a name',
}

/** The address of a liar; `second`: another of the same kind. */
export function liarUrl(kind) {
  return `https://${kind}.liar.invalid`
}

function kindOf(url) {
  const [, kind] = /^https:\/\/(\w+)\.liar\.invalid(?=\/)/.exec(url) ?? []
  return kind
}

async function changed(response, change) {
  const bytes = change(new Uint8Array(await response.arrayBuffer()))
  return new Response(bytes, { status: response.status, headers: response.headers })
}

function flipped(bytes) {
  const at = bytes.length >> 1
  bytes[at] ^= 1
  return bytes
}

/** A range or an offset that lies a little further on. */
function shifted(url, headers) {
  const next = url.replace(/\/chunk\/(\d+)/, (_, offset) => `/chunk/${Number(offset) + 262_144}`)
  const { range, ...rest } = headers
  const moved = range?.replace(/\d+/g, (digits) => String(Number(digits) + 1))
  return { url: next, headers: moved === undefined ? rest : { ...rest, range: moved } }
}

/**
 * `fetch` for a page that knows liars. `truth`: the gateway that they ask; `other`: the id that is given for another one, and by names.
 */
export function lyingFetch(truth, other) {
  return async (url, init = {}) => {
    const kind = kindOf(url)
    if (kind === undefined) return fetch(url, init)
    const path = new URL(url).pathname
    const real = truth + path
    const isContent = /^\/(raw|chunk)\//.test(path)
    if (kind === 'flips' && isContent) return changed(await fetch(real, init), flipped)
    if (kind === 'swaps' && isContent) return fetch(real.replace(/\/raw\/[^/]+/, `/raw/${other}`), init)
    if (kind === 'shifts' && isContent) {
      const moved = shifted(real, init.headers ?? {})
      return fetch(moved.url, { ...init, headers: moved.headers })
    }
    if (kind === 'delays' && path.includes('/resolver/')) {
      const body = JSON.stringify({ txId: other })
      return new Response(body, { headers: { 'content-type': 'application/json' } })
    }
    return fetch(real, init)
  }
}
