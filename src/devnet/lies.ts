/** What gateways of a demonstration lie about. */
const liarKinds = ['flips', 'swaps', 'shifts', 'delays'] as const

/**
 * `flips`: changes one byte of content. `swaps`: gives another item, with all of its true headers. `shifts`: gives another part
 * than was requested. `delays`: gives another content under every name, as an old answer would.
 */
export type LiarKind = (typeof liarKinds)[number]

/** Whether there are gateways of the devnet that lie in this way. */
export function isLiar(kind: string): kind is LiarKind {
  return (liarKinds as readonly string[]).includes(kind)
}

/** The request of a liar to the true gateway, and how it changes the answer. */
export interface Lie {
  /** With query. */
  readonly path: string
  readonly range: string | undefined
  /** Whether a byte of the body is changed. */
  readonly flips: boolean
  /** The Content-Range that it states for its part, from the gateway's. */
  readonly contentRange?: (stated: string) => string
  /** The whole answer, where no request is needed. */
  readonly json?: string
}

const chunkBytes = 262_144

/** The lie for one request. `others`: ids, of which one is given for the requested one. */
export function lieOf(
  kind: LiarKind,
  { path, range }: { readonly path: string; readonly range: string | undefined },
  others: readonly string[],
): Lie {
  const honest: Lie = { path, range, flips: false }
  const another = others.find((id) => !path.includes(id)) ?? ''
  const isContent = /^\/(raw|chunk)\//.test(path)
  switch (kind) {
    case 'flips':
      return { ...honest, flips: isContent }
    case 'swaps':
      return { ...honest, path: path.replace(/^\/raw\/[^/?]+/, `/raw/${another}`) }
    case 'shifts':
      return isContent ? shifted(honest) : honest
    case 'delays':
      return /^\/[\w-]+\/resolver\//.test(path)
        ? { ...honest, json: JSON.stringify({ txId: another }) }
        : honest
  }
}

/** A chunk or a range that lies a little further on. */
function shifted({ path, range }: Lie): Lie {
  const by = (text: string, count: number): string => String(Number(text) + count)
  return {
    path: path.replace(/^\/chunk\/(\d+)/, (_, offset: string) => `/chunk/${by(offset, chunkBytes)}`),
    range: range?.replace(/\d+/g, (digits) => by(digits, 1)),
    flips: false,
    contentRange: (stated) =>
      stated.replace(/(\d+)-(\d+)/, (_, from: string, to: string) => `${by(from, -1)}-${by(to, -1)}`),
  }
}
