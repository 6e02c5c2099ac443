"""C++ that several tests of ns-3 windows share."""

# Stands in a program instead of the line "// LIMITED".
LIMITED = r"""/// Newer ns-3 lets a window grow only where it is what holds the sender back.
template <class State>
static auto Limited(State state, int) -> decltype(state->m_isCwndLimited, void())
{
    state->m_isCwndLimited = true;
}

template <class State>
static void Limited(State, long)
{
}"""
