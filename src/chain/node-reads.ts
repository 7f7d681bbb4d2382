import type { Id } from '../format/id.js'
import { isRefusal, type Refusal, refuse } from '../format/refusal.js'
import type { Transaction } from '../format/transaction.js'
import type { TransactionStatus } from './chain.js'
import type { Node, NodeAnswer } from './node.js'
import { readStatus } from './node-answers.js'
import { readTransaction } from './read-transaction.js'
import { absenceRefusal } from './verdict.js'

/** What an answer of a node means. */
export type NodeRead<T> = (answer: NodeAnswer, node: Node) => T | Refusal

/** Reads a transaction of this id. `signed`: its signature must hold, too. */
export function transactionRead(id: Id, signed: boolean): NodeRead<Transaction> {
  return (answer, node) =>
    answer.status === 200
      ? readTransaction(answer.body.toString('utf8'), id, signed, node.name)
      : absenceRefusal(answer.status, node)
}

/** Reads what `GET /tx/ID/status` answers: 202 stands for one that is in no block. */
export function readTransactionStatus(answer: NodeAnswer, node: Node): TransactionStatus | Refusal {
  return answer.status === 202 ? { kind: 'pending' } : readWith(readStatus)(answer, node)
}

/** Reads a body by `read`, which gives undefined for what is malformed. Refusals: `unknown`, `upstream`. */
export function readWith<T>(read: (text: string) => T | undefined): NodeRead<T> {
  return (answer, node) => {
    if (answer.status !== 200) return absenceRefusal(answer.status, node)
    return (
      read(answer.body.toString('utf8')) ??
      refuse('upstream', 'upstream', `${node.name} sent an answer that cannot be read`)
    )
  }
}

/** The same, for answers that must agree with the question; another one is refused as `forged`. */
export function readAgreeing<T>(
  read: (text: string) => T | undefined,
  agrees: (value: T) => boolean,
): NodeRead<T> {
  const plain = readWith(read)
  return (answer, node) => {
    const value = plain(answer, node)
    if (isRefusal(value) || agrees(value)) return value
    return refuse('forged', 'upstream', `${node.name} answers with something else`)
  }
}
