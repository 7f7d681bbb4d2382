import { answerSmall, publicShortly } from '../http/small-answer.js'
import type { Route } from '../serving/route.js'
import type { PeerWeights } from '../source/upstream/peer-weights.js'

export interface PeersParts {
  readonly pathPrefix: string
  /** Addresses of gateways of the network, in the order of `weights`. */
  readonly gateways: readonly string[]
  readonly weights: PeerWeights
  /** Addresses of base-layer nodes. */
  readonly nodes: readonly string[]
}

/**
 * `GET|HEAD {prefix}/peers`: the gateways of the network and the nodes that this gateway uses, by host. Clients that choose
 * among gateways read it. No chunks are requested from gateways: `chunkWeight` is 0.
 */
export function peersRoute({ pathPrefix, gateways, weights, nodes }: PeersParts): Route {
  const path = `${pathPrefix}/peers`
  return {
    family: 'info',
    path,
    methods: ['GET', 'HEAD'],
    about: [{ path, summary: 'Gateways of the network and base-layer nodes that are used', statuses: [200] }],
    handle(request, reply, first) {
      const peers = {
        gateways: byHost(gateways, (url, at) => ({ url, dataWeight: weights.at(at), chunkWeight: 0 })),
        arweaveNodes: byHost(nodes, (url) => ({ url })),
      }
      answerSmall(request, reply, first, { status: 200, lines: publicShortly, json: peers })
    },
  }
}

/**
 * Keyed by host, without user and password. Addresses with a path or a query are left out: those of paid services hold the
 * operator's key there.
 */
function byHost(urls: readonly string[], describe: (url: string, at: number) => object): object {
  return Object.fromEntries(
    urls.flatMap((text, at) => {
      const { protocol, host, pathname, search } = new URL(text)
      return pathname !== '/' || search !== '' ? [] : [[host, describe(`${protocol}//${host}`, at)]]
    }),
  )
}
