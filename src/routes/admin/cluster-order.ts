import type { Address } from '../../actor/mailbox-address.js'
import { isRefusal } from '../../format/refusal.js'
import type { Order, OrderAnswer } from './order.js'

/** A question to the thread of the cluster. */
export interface ClusterRequest {
  readonly kind: 'machines'
}

export interface ClusterReply {
  /** What the order answers; undefined: the database has no tables of a cluster. */
  readonly machines: object | undefined
}

/** The machines of the cluster, and what is wrong with them. `line`: absent where this machine is in none. */
export function clusterOrder(line: Address<ClusterRequest, ClusterReply> | undefined): Order {
  return {
    method: 'GET',
    path: 'cluster',
    summary: 'The machines of the cluster, and what is wrong with them',
    statuses: [200, 404, 503],
    act: () => (line === undefined ? noCluster : machines(line)),
  }
}

const noCluster: OrderAnswer = { status: 404, body: 'There is no cluster: see CLUSTER_DATABASE_URL' }

async function machines(line: Address<ClusterRequest, ClusterReply>): Promise<OrderAnswer> {
  const reply = await line.ask({ kind: 'machines' })
  if (isRefusal(reply)) return { status: 503, body: reply.message, retryAfterSeconds: 5 }
  return reply.machines === undefined ? noCluster : { status: 200, body: reply.machines }
}
