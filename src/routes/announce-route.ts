import type { Address } from '../actor/mailbox-address.js'
import { isRefusal } from '../format/refusal.js'
import type { Reply, Request } from '../http/exchange.js'
import { answerSmall, noStore, textType } from '../http/small-answer.js'
import { refusedAnswer } from '../serving/refused-answer.js'
import type { Route } from '../serving/route.js'
import type { SwarmReply, SwarmRequest } from '../torrent/swarm.js'

export interface AnnounceParts {
  readonly pathPrefix: string
  /** The tracker, on the thread of the seeder. */
  readonly tracker: Address<SwarmRequest, SwarmReply>
  /** The client's address, behind proxies or not. */
  readonly clientOf: (request: Request) => string
}

/** `GET {prefix}/indexes/announce`: the tracker of the bands that are offered here (BEP 3). */
export function announceRoute({ pathPrefix, tracker, clientOf }: AnnounceParts): Route {
  return {
    family: 'other',
    path: `${pathPrefix}/indexes/announce`,
    methods: ['GET'],
    about: [
      {
        path: `${pathPrefix}/indexes/announce`,
        summary: 'The tracker of the bands that are offered here (BEP 3)',
        statuses: [200],
        query: ['info_hash'],
        type: 'text/plain',
      },
    ],
    async handle(request: Request, reply: Reply, first: string): Promise<void> {
      const [query, address, host] = [request.query, clientOf(request), request.header('host') ?? '']
      const answer = await tracker.ask({ kind: 'announce', query, address, host })
      if (isRefusal(answer)) answerSmall(request, reply, first, refusedAnswer(answer))
      else
        answerSmall(request, reply, first, { status: 200, type: textType, lines: noStore, body: answer.body })
    },
  }
}
