/**
 * A route of a service whose path has names in braces, as OpenAPI writes them: `/price/{currency}/{amount}`. The router of a host
 * (`Router`) knows no names. It finds a group of routes by the beginning that their paths have in common, and the handler of the
 * group takes the route whose path fits.
 */
export interface PatternRoute {
  readonly path: string
  /** GET where absent. */
  readonly method?: string
}

/** Routes whose paths begin alike. */
export type PatternGroup<One> = [One, ...One[]]

/** The route of a group that a path fits, and what stands in place of the names, in their order and not decoded. */
export interface Fitting<One> {
  readonly route: One
  readonly values: readonly string[]
}

/** Groups by what stands before the first brace: the path of the route that a host has for the group. */
export function patternGroups<One extends PatternRoute>(
  routes: readonly One[],
): ReadonlyMap<string, PatternGroup<One>> {
  const groups = new Map<string, PatternGroup<One>>()
  for (const route of routes) {
    const brace = route.path.indexOf('{')
    const beginning = brace < 0 ? route.path : route.path.slice(0, brace)
    const group = groups.get(beginning)
    if (group === undefined) groups.set(beginning, [route])
    else group.push(route)
  }
  return groups
}

/** Makes something of each route of a group. */
export function mapGroup<One, Made>(
  [first, ...rest]: PatternGroup<One>,
  make: (route: One) => Made,
): PatternGroup<Made> {
  return [make(first), ...rest.map(make)]
}

/** The methods that a route answers. */
export function patternMethods({ method = 'GET' }: PatternRoute): string[] {
  return method === 'GET' ? ['GET', 'HEAD'] : [method]
}

/** Those of a group that a path fits, in their order. Neither the case of fixed segments counts, nor a slash at the end. */
export function fittingRoutes<One extends PatternRoute>(
  group: readonly One[],
  path: string,
): readonly Fitting<One>[] {
  return group.flatMap((route) => {
    const values = valuesIn(route.path, path)
    return values === undefined ? [] : [{ route, values }]
  })
}

/** The values by the names of the path. */
export function namedValues({ route, values }: Fitting<PatternRoute>): Record<string, string> {
  const names = route.path.split('/').filter((segment) => segment.startsWith('{'))
  return Object.fromEntries(names.map((name, at) => [name.slice(1, -1), values[at] ?? '']))
}

function valuesIn(pattern: string, path: string): string[] | undefined {
  const wanted = pattern.split('/')
  const given = path.split('/')
  if (given.at(-1) === '' && wanted.at(-1) !== '') given.pop()
  if (wanted.length !== given.length) return undefined
  const values: string[] = []
  for (const [at, segment] of wanted.entries()) {
    const value = given[at] ?? ''
    if (segment.startsWith('{')) values.push(value)
    else if (segment !== value.toLowerCase()) return undefined
  }
  return values
}
