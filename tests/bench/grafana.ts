type Some<T> = T extends (infer U)[] ? Some<U>[] : T extends object ? { [K in keyof T]?: Some<T[K]> } : T;
// JSON has the values of enumerations as plain strings.
type Plain<T> = T extends string ? `${T}` : T extends (infer U)[] ? Plain<U>[]
  : T extends object ? { [K in keyof T]: Plain<T[K]> } : T;
type Config = NonNullable<Panel["fieldConfig"]>;
type Fields<F> = Omit<Config, "defaults"> & {
  defaults: Omit<Config["defaults"], "custom"> & { custom?: Some<F> };
};
type Own<O, F> = { options: Some<O>; fieldConfig: Fields<F> };
type Kind<O, F> = Plain<Omit<Panel, "options" | "fieldConfig"> & Own<O, F>>;
