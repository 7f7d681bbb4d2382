import { parse } from 'graphql'
import t from 'tap'
import { writers } from '../../src/query/roots.js'
import { planOf, type SelectionPlan } from '../../src/query/selected.js'

function planned(query: string): SelectionPlan {
  const document = parse(query)
  const [operation] = document.definitions
  if (operation?.kind !== 'OperationDefinition') throw new Error('the operation is first')
  return planOf(document, operation, { a: true }, writers)
}

const aliases = (count: number, field: string): string =>
  Array.from({ length: count }, (_, at) => `a${at}: ${field}`).join(' ')

t.test('the plan of a short text that stands for very many fields is not kept', async (t) => {
  const short = `{ ${aliases(28, 'transactions { ...c }')} }
    fragment c on TransactionConnection { ${aliases(10, 'edges { ...e }')} }
    fragment e on TransactionEdge { ${aliases(10, 'node { ...n }')} }
    fragment n on Transaction { ${aliases(10, 'anchor')} }`
  t.ok(short.length < 2048)
  t.equal(planned(short).isLasting, false)
  t.equal(planned('{ transactions { edges { node { id tags { name value } } } } }').isLasting, true)
  const varying = 'query ($a: Boolean!) { transactions { count @include(if: $a) } }'
  t.equal(planned(varying).isLasting, false, 'nor one that depends on variables')
})
